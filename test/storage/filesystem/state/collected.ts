/** What an iteration yields. */
export async function collected<Item>(items: AsyncIterable<Item> | Iterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}
