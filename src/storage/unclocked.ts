/** Work that ends when it ends, whatever a clock says: code that is being loaded, other threads that compress or encrypt. */
const underWay = new Set<Promise<unknown>>()

/** The same promise, which virtual clocks wait for before the time moves on. What it does must wait for no clock. */
export function unclocked<Result>(work: Promise<Result>): Promise<Result> {
  underWay.add(work)
  const end = () => void underWay.delete(work)
  work.then(end, end)
  return work
}

/** Resolves once all that is under way has come to its end, to whether there was any. For virtual clocks: how many turns it takes says nothing. */
export async function unclockedWorkEnded(): Promise<boolean> {
  const works = [...underWay]
  await Promise.allSettled(works)
  return works.length > 0
}
