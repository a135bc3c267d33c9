/** Does its share of work in a round, and resolves to the milliseconds that it took. */
export type Side = () => Promise<number>

export interface Comparison {
  /** Medians of the rounds, in milliseconds. */
  readonly ours: number
  readonly theirs: number
  /** Their time by ours, round by round, ascending. */
  readonly ratios: readonly number[]
}

/** Rounds in alternation, so that what else the machine does weighs on all sides. One round to warm up is not counted. */
export async function compare<Name extends string>(
  rounds: number,
  ours: Side,
  rivals: Readonly<Record<Name, Side>>,
): Promise<Record<Name, Comparison>> {
  const names = Object.keys(rivals) as Name[]
  const ourTimes: number[] = []
  const theirTimes = new Map<Name, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    const time = await ours()
    if (round > 0) ourTimes.push(time)
    for (const name of names) {
      const theirs = await rivals[name]()
      if (round > 0) theirTimes.get(name)!.push(theirs)
    }
  }
  const comparisonWith = (name: Name): Comparison => {
    const theirs = theirTimes.get(name)!
    const ratios = theirs.map((time, round) => time / ourTimes[round]!).sort((a, b) => a - b)
    return { ours: median(ourTimes), theirs: median(theirs), ratios }
  }
  return Object.fromEntries(names.map((name) => [name, comparisonWith(name)])) as Record<Name, Comparison>
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

export function median(values: readonly number[]): number {
  const ascending = [...values].sort((a, b) => a - b)
  const middle = ascending.length >> 1
  return ascending.length % 2 === 1 ? ascending[middle]! : (ascending[middle - 1]! + ascending[middle]!) / 2
}
