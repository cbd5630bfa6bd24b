/** Returns the number of results with each outcome. */
export async function countOutcomes(
  pages: AsyncIterable<readonly { readonly outcome: string }[]>,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const page of pages)
    for (const { outcome } of page) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
