/** What is measured, of which count, against whom. The sides are those of page.ts. */
export interface Work {
  readonly ours: string
  readonly rival: string
  /** Whether the rival has headwater's page, and so its process. Absent: it has one of its own, so that nobody pays for the garbage of the other. */
  readonly samePage?: boolean
  readonly name: string
  readonly against: string
  readonly atLeast?: number
  readonly count: number
  /** How many times a turn does it; 1 when absent. */
  readonly repeats?: number
  /** What counts are rounded to when less is measured. */
  readonly step: number
  readonly each: string
  /** How many times as many rounds as asked for: what is quick varies more. */
  readonly rounds: number
}

const DEXIE_READ = {
  rival: 'Dexie read',
  against: 'Dexie, `orderBy`, `toArray`',
  step: 1_000,
  rounds: 3,
  repeats: 5,
}

export const WORKS: Readonly<Record<string, readonly Work[]>> = {
  awaited: [
    {
      ours: 'append awaited',
      rival: 'bare put',
      samePage: true,
      name: 'awaited appends of one record',
      against: 'a bare `put`, each in its own strict transaction',
      atLeast: 0.8,
      count: 100,
      step: 1,
      each: 'an append',
      rounds: 5,
    },
  ],
  concurrent: [
    {
      ours: 'append at once',
      rival: 'append awaited',
      samePage: true,
      name: '100 concurrent appends',
      against: '100 awaited ones',
      atLeast: 10,
      count: 100,
      step: 100,
      each: 'an append',
      rounds: 3,
    },
  ],
  batches: [
    {
      ours: 'append batches',
      rival: 'Dexie batches',
      name: 'batches of 1,000 × 256 B',
      against: 'Dexie, `bulkAdd` of a row a record, strict',
      atLeast: 10,
      count: 50,
      step: 1,
      each: 'a batch',
      rounds: 1,
    },
  ],
  reading: [
    {
      ...DEXIE_READ,
      ours: 'read batches',
      name: 'read 10,000 × 256 B in order, appended in batches of 1,000',
      atLeast: 5,
      count: 10_000,
      each: 'a record',
    },
    {
      ...DEXIE_READ,
      ours: 'read singles',
      name: 'read 10,000 × 256 B in order, appended one by one',
      count: 10_000,
      each: 'a record',
    },
  ],
}
