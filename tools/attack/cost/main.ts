import { withService } from '../../../bench/with-service';
import { largestFile } from '../../../tests/harness/build';
import { SIGNING_SECRET } from '../../../tests/harness/keys';
import { now, tokenFor } from '../../../tests/harness/requests';
import type { TestService } from '../../../tests/harness/service';
import { costAddresses, ordinaryRequest } from './addresses';
import { costTargets, type ExcessiveCost, findCosts, ordinaryCost } from './find';
import { readinessUnder, WORST_SHAPES, worstRequest } from './readiness';

/**
 * Options of the measurement. A dimension is a part of a request, such as its query or its body, that the measurement enlarges
 * (dimensions.ts).
 */
export interface CostOptions {
  /**
   * Regular expression that selects the measurements. It is matched against the method, the path and the name of a dimension,
   * separated by spaces.
   */
  readonly only: string | undefined;
  /** If true, the screening (the first, short measurement) of each dimension uses two sizes instead of five. */
  readonly quick: boolean;
}

/** Maximum median response time of GET /health/ready while one attacker sends requests. */
const MAX_READY_MS = 250;
/**
 * A second webhook signing secret, as during a rotation. The service tries this secret first and then `SIGNING_SECRET`, so each
 * verification computes two hashes.
 */
const NEW_SIGNING_SECRET = `whsec_${Buffer.from('a new signing secret for tests..').toString('base64')}`;

/**
 * Prints one row for each dimension that has a finding (a cost above a limit). The row contains the address (method and path)
 * of the request with the highest cost.
 */
function printFindings(findings: readonly ExcessiveCost[]): void {
  const byCost = findings.toSorted((one, other) => other.worst.milliseconds - one.worst.milliseconds);
  const worstOfEach = byCost.filter(
    ({ dimension }, index) => byCost.findIndex((other) => other.dimension === dimension) === index,
  );
  const rows = worstOfEach.map(({ dimension, address, worst, exponent, broken }) => ({
    dimension,
    'worst address': address,
    bytes: worst.bytes,
    ms: Math.round(worst.milliseconds),
    'reference ms': Number(worst.reference.toFixed(1)),
    exponent: exponent === undefined ? '' : Number(exponent.toFixed(1)),
    status: worst.status,
    broken: broken.join(', '),
    addresses: findings.filter((other) => other.dimension === dimension).length,
  }));
  if (rows.length > 0) console.table(rows);
}

async function countSlowShapes(service: TestService, token: string): Promise<number> {
  let slow = 0;
  for (const shape of WORST_SHAPES) {
    const milliseconds = await readinessUnder(service.url, worstRequest(shape, token));
    if (milliseconds >= MAX_READY_MS) slow += 1;
    console.log(
      `GET /health/ready: median ${Math.round(milliseconds)} ms while a client sends ${shape.method} ${shape.path} with ${shape.dimension}`,
    );
  }
  return slow;
}

/**
 * Sends requests to each address (method and path). In each series of requests, one dimension grows.
 * Compares the CPU time that the server uses for these requests with the CPU time for an ordinary (small) request to the same
 * address. Without `only`, also measures GET /health/ready while one attacker sends requests. Sets the exit code to 1 if the CPU
 * time grows faster than the size of the dimension or is too high, or if GET /health/ready is slow.
 */
export async function attackCosts({ only, quick }: CostOptions): Promise<void> {
  const environment = {
    CLERK_FAPI_URL: '',
    IDP_WEBHOOK_SIGNING_SECRET: `${NEW_SIGNING_SECRET} ${SIGNING_SECRET}`,
  };
  await withService({ environment }, async (service) => {
    const [server] = service.processes;
    if (!server) throw new Error('The service has no process.');
    const token = tokenFor(service.idp, 'user_cost', { exp: now() + 3_600 });
    const targets = costTargets(costAddresses(largestFile()), token, new RegExp(only ?? '', 'i'));
    const dimensions = new Set(targets.flatMap((target) => target.dimensions));
    const home = ordinaryRequest({ path: '/', needsSession: false, body: '' }, 'GET', token);
    const page = await ordinaryCost(server, { ordinary: home, get: home });
    const findings = await findCosts(server, targets, { quick, page }, ({ address }, milliseconds) =>
      console.log(`${address}: an ordinary request costs ${milliseconds.toFixed(1)} ms`),
    );
    const slow = only === undefined ? await countSlowShapes(service, token) : 0;
    printFindings(findings);
    const addresses = new Set(targets.map(({ ordinary }) => ordinary.target)).size;
    console.log(`${addresses} addresses, ${dimensions.size} dimensions, ${findings.length} findings`);
    if (findings.length + slow > 0) process.exitCode = 1;
  });
}
