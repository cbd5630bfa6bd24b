export { guardTenant } from './guard';
