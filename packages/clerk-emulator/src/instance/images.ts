import { ApiError, parameterError, requireFound } from './api-error';
import { newId } from './ids';
import type { Instance } from './instance';

/** A file of a form, such as a picture. */
export interface UploadedFile {
  readonly type: string;
  readonly base64: string;
}

/** Stores a picture and returns its address at the origin of the request. Throws a 422 for another kind of file. */
export function storeImage({ store }: Instance, url: URL, file: UploadedFile | undefined): string {
  const { type, base64 } = requireFile(file);
  const { id } = store.images.put({ id: newId('img'), type, base64 });
  return `${url.origin}/images/${id}`;
}

function requireFile(file: UploadedFile | undefined): UploadedFile {
  if (file === undefined) throw parameterError('missing', 'file');
  if (/^image\/(png|jpeg|gif|webp)$/.test(file.type)) return file;
  const message = 'The file must be a PNG, JPEG, GIF or WebP image.';
  throw new ApiError(422, 'form_param_value_invalid', message, 'file');
}

/** Returns the response for a stored picture. A page of its origin cannot be made of it. Throws a 404 for an unknown id. */
export function imageResponse({ store }: Instance, id: string): Response {
  const { type, base64 } = requireFound(store.images.get(id), 'The image');
  const headers = { 'content-type': type, 'x-content-type-options': 'nosniff' };
  return new Response(Buffer.from(base64, 'base64'), { headers });
}

/** Returns the address of a picture, or else the initials of a name on a colour, inline, so that no other host is called. */
export function imageUrl({ id, imageUrl }: { id: string; imageUrl: string | null }, name: string): string {
  if (imageUrl !== null) return imageUrl;
  const initials = name
    .split(/\s+/)
    .map((word) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? '')
    .join('')
    .slice(0, 2)
    .toUpperCase();
  const hue = [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 0);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" fill="hsl(${hue} 45% 40%)"/><text x="16" y="21" font-family="sans-serif" font-size="14" fill="#fff" text-anchor="middle">${initials}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
