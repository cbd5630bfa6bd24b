import type { SeenResponse } from '../responses';

const REQUEST_LINE = /^([A-Za-z]+) (\S+) HTTP\/1\.[01]\r?$/gm;

/** Returns a decoded chunked body and the offset after its last chunk. Returns undefined if the body is incomplete. */
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

/** Returns the body that begins at `start`, and the offset of its end. Returns undefined if the body is incomplete. */
function bodyAt(text: string, start: number, status: number, headers: Headers, method: string) {
  if (method === 'HEAD' || status === 204 || status === 304) return { body: '', end: start };
  if (headers.get('transfer-encoding') === 'chunked') return chunked(text, start);
  const end = start + Number(headers.get('content-length') ?? text.length - start);
  return end > text.length ? undefined : { body: text.slice(start, end), end };
}

/**
 * Parses the complete responses on a connection and assigns a request to each response. `sent` contains the requests and
 * `received` the responses, both as Latin-1. If the number of responses differs from the number of requests, only the first
 * assignment is certain. The other responses then have no method and no path.
 */
export function parseResponses(sent: string, received: string): SeenResponse[] {
  const requests = [...sent.matchAll(REQUEST_LINE)].map(([, method = '', target = '']) => ({
    method,
    pathname: target.startsWith('/') ? target.split('?', 1)[0] : undefined,
  }));
  const responses: SeenResponse[] = [];
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
    const request = requests[responses.length] ?? { method: '', pathname: undefined };
    const found = bodyAt(received, at, status, headers, request.method);
    if (!found) break;
    responses.push({ ...request, status, headers, text: Buffer.from(found.body, 'latin1').toString() });
    at = found.end;
  }
  if (requests.length === responses.length) return responses;
  return responses.map((response, index) =>
    index === 0 ? response : { ...response, method: '', pathname: undefined },
  );
}
