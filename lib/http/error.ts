export { HttpError } from '../core/error';
