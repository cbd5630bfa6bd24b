// The configuration of every baseline. The root keeps Turbopack from finding middleware.ts and instrumentation.ts of the service.
export default { turbopack: { root: import.meta.dirname } };
