import { IncomingMessage, ServerResponse } from 'node:http';

/** A body may have 1,024 chunks, and one more for every 64 bytes. Next.js copies every chunk separately, whatever its size. */
const MAX_SMALL_CHUNKS = 1_024;
const MIN_CHUNK_BYTES = 64;

/** A request whose body can be discarded. Instead of reading too many chunks, it emits `too-many-chunks` once. */
export class LimitedRequest extends IncomingMessage {
  #chunksLeft = MAX_SMALL_CHUNKS;
  #isDiscarded = false;

  get hasBody(): boolean {
    const { 'transfer-encoding': encoding, 'content-length': length } = this.headers;
    return encoding !== undefined || Number(length ?? 0) > 0;
  }

  /** Ends the body. The connection is not read any further, so it must be closed after the response. */
  discardBody(): void {
    // Otherwise Node.js would close the connection of an incomplete request before the response.
    this.complete = true;
    this.push(null);
    this.#isDiscarded = true;
  }

  /** Receives a chunk from the HTTP parser. The parser stops reading the socket if the return value is false. */
  override push(chunk: Buffer | string | null, encoding?: BufferEncoding): boolean {
    if (this.#isDiscarded) return false;
    if (chunk !== null) this.#chunksLeft += chunk.length / MIN_CHUNK_BYTES - 1;
    if (this.#chunksLeft >= 0) return super.push(chunk, encoding);
    this.#isDiscarded = true;
    this.emit('too-many-chunks');
    return false;
  }
}

/** A response that sends its headers and the first bytes of its body in one packet. */
export class CombinedResponse extends ServerResponse<LimitedRequest> {
  /** Next.js calls this immediately before it writes the first bytes. */
  override flushHeaders(): void {
    this.cork();
    process.nextTick(() => this.uncork());
    super.flushHeaders();
  }
}
