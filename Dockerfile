FROM node:24-slim AS build
WORKDIR /app
# Docker repeats the installation only if one of these files has changed.
COPY package.json package-lock.json ./
RUN npm ci --omit=dev
COPY . .
RUN npm run build

FROM node:24-slim
WORKDIR /app
ENV NODE_ENV=production
# .next/standalone contains the modules that the service imports. tests/stack/image.test.ts starts a copy of these files.
COPY --from=build /app/.next/standalone ./
COPY --from=build /app/.next/static ./.next/static
COPY --from=build /app/.next/server.mjs ./.next/server.mjs
# Kubernetes accepts only a number with `runAsNonRoot`. This is the user `node`.
USER 1000
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://localhost:${process.env.PORT || 3000}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Without npm, the process receives SIGTERM.
CMD ["node", ".next/server.mjs"]
