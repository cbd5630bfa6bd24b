import './sdk-environment';

/** The provider's component that creates and switches organizations. It throws in an instance without organizations. */
export { OrganizationSwitcher } from '@clerk/nextjs';
