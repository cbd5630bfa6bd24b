/** The Prisma client of the application. Change this line if the client is elsewhere. */
export { prisma } from '../prisma';
