import type { SeenAnswer } from '../answers';

const REQUEST_LINE = /^([A-Za-z]+) (\S+) HTTP\/1\.[01]\r?$/gm;

/** What follows a chunked head, and where it ends; undefined: it was cut off. */
function chunked(text: string, start: number): { readonly body: string; readonly end: number } | undefined {
  let body = '';
  for (let at = start; ; ) {
    const line = /^([\da-f]+)\r\n/i.exec(text.slice(at, at + 20));
    if (!line) return undefined;
    const from = at + line[0].length;
    const size = Number.parseInt(line[1] ?? '', 16);
    at = from + size + 2;
    if (at > text.length) return undefined;
    if (size === 0) return { body, end: at };
    body += text.slice(from, from + size);
  }
}

/** The body behind a head, and where it ends; undefined: it was cut off. */
function bodyAt(text: string, start: number, status: number, headers: Headers, method: string) {
  if (method === 'HEAD' || status === 204 || status === 304) return { body: '', end: start };
  if (headers.get('transfer-encoding') === 'chunked') return chunked(text, start);
  const end = start + Number(headers.get('content-length') ?? text.length - start);
  return end > text.length ? undefined : { body: text.slice(start, end), end };
}

/**
 * The answers that came whole on a connection, in order, beside their requests; both are given as Latin-1. Where the
 * requests cannot be told apart with certainty, only the first answer has its own.
 */
export function answersIn(sent: string, received: string): SeenAnswer[] {
  const requests = [...sent.matchAll(REQUEST_LINE)].map(([, method = '', target = '']) => ({
    method,
    pathname: target.startsWith('/') ? target.split('?', 1)[0] : undefined,
  }));
  const answers: SeenAnswer[] = [];
  for (let at = 0; ; ) {
    const end = received.indexOf('\r\n\r\n', at);
    const [statusLine = '', ...lines] = received.slice(at, end).split('\r\n');
    const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(statusLine)?.[1]);
    if (end === -1 || Number.isNaN(status)) break;
    at = end + 4;
    if (status < 200) continue;
    const headers = new Headers(
      lines.map((line): [string, string] => [
        line.split(':', 1)[0] ?? '',
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const request = requests[answers.length] ?? { method: '', pathname: undefined };
    const found = bodyAt(received, at, status, headers, request.method);
    if (!found) break;
    answers.push({ ...request, status, headers, text: Buffer.from(found.body, 'latin1').toString() });
    at = found.end;
  }
  if (requests.length === answers.length) return answers;
  return answers.map((answer, index) =>
    index === 0 ? answer : { ...answer, method: '', pathname: undefined },
  );
}
