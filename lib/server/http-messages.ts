import { IncomingMessage, ServerResponse } from 'node:http';

/** A body may have so many chunks, and one more for each 64 bytes: Next.js copies each chunk by itself, whatever its size. */
const MAX_SMALL_CHUNKS = 1_024;
const MIN_CHUNK_BYTES = 64;

/** A request whose body can be left unread. It emits `too-many-chunks`, once, instead of reading any further. */
export class LimitedRequest extends IncomingMessage {
  #chunksLeft = MAX_SMALL_CHUNKS;
  #isDiscarded = false;

  get hasBody(): boolean {
    const { 'transfer-encoding': encoding, 'content-length': length } = this.headers;
    return encoding !== undefined || Number(length ?? 0) > 0;
  }

  /** Ends the body here. The connection is not read any further, so the response has to be its last. */
  discardBody(): void {
    // Otherwise the end of an incomplete request would end the connection before its response.
    this.complete = true;
    this.push(null);
    this.#isDiscarded = true;
  }

  /** Receives a chunk from Node's parser, which stops reading the socket when this returns false. */
  override push(chunk: Buffer | string | null, encoding?: BufferEncoding): boolean {
    if (this.#isDiscarded) return false;
    if (chunk !== null) this.#chunksLeft += chunk.length / MIN_CHUNK_BYTES - 1;
    if (this.#chunksLeft >= 0) return super.push(chunk, encoding);
    this.#isDiscarded = true;
    this.emit('too-many-chunks');
    return false;
  }
}

/** A response whose headers are sent together with the first bytes of its body, in one packet. */
export class CombinedResponse extends ServerResponse<LimitedRequest> {
  /** Next.js calls this right before it writes the first bytes. */
  override flushHeaders(): void {
    this.cork();
    process.nextTick(() => this.uncork());
    super.flushHeaders();
  }
}
