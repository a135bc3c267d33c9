import { Child } from './child.ts'
import type { Turn } from './host.ts'
import type { Contestant, Measurement, Quantity } from './measurement.ts'
import type { Settings } from './settings.ts'

/** Milliseconds, and bytes by which the memory grew, for one unit. */
type Sample = Readonly<Record<Quantity, number>>

export interface Samples {
  readonly samples: readonly Sample[]
  readonly peakBytes: number
}

/** How much longer a warm-up may take than it should. */
const WARM_UP_FACTOR_MAX = 4

/**
 * Measures all contestants in alternation, so that other load on the machine affects all of them. Each has
 * processes of its own, so that none pays for the garbage of another.
 */
export async function measure(
  contestants: readonly Contestant[],
  measurement: Measurement,
  settings: Settings,
): Promise<Samples[]> {
  const runners = contestants.map((contestant) => new Runner(contestant, measurement, settings))
  try {
    for (const runner of runners) await runner.warmUp()
    const rounds = settings.rounds * (measurement.rounds ?? 1)
    for (let round = 0; round < rounds; round++) for (const runner of runners) await runner.turn()
    const measured: Samples[] = []
    for (const runner of runners) measured.push(await runner.finish())
    return measured
  } finally {
    for (const runner of runners) runner.kill()
  }
}

/** The processes of a contestant. */
class Runner {
  readonly #contestant: Contestant
  readonly #measurement: Measurement
  readonly #settings: Settings
  readonly #directory: string
  readonly #size: number
  readonly #isGrowthMeasured: boolean
  readonly #samples: Sample[] = []
  #children: Child[] = []
  #count = 1
  #peakBytes = 0

  constructor(contestant: Contestant, measurement: Measurement, settings: Settings) {
    this.#contestant = contestant
    this.#measurement = measurement
    this.#settings = settings
    this.#directory = settings.scratch.fresh()
    this.#size = settings.sized(measurement.size ?? 1)
    this.#isGrowthMeasured = measurement.rivals.some(({ by }) => by === 'growth')
  }

  /** Compiles the code, and finds out how much work fills a turn. */
  async warmUp(): Promise<void> {
    const { exactly, most = Number.POSITIVE_INFINITY, isFresh } = this.#measurement
    await this.#fill()
    this.#count = exactly === 'size' ? this.#size : (exactly ?? 1)
    if (isFresh) return
    await this.#start()
    const { warmUpMs } = this.#settings
    let [wall, cpu] = [0, 0]
    // On a busy machine, CPU time says how much was compiled. Work that waits for a disk takes little of it.
    while (wall < warmUpMs || (cpu < warmUpMs && wall < WARM_UP_FACTOR_MAX * warmUpMs)) {
      const { wallMs } = await this.#work()
      wall += wallMs
      cpu = (await this.#children[0]!.usage()).cpuMs
      if (exactly !== undefined) continue
      const wanted = (this.#settings.turnMs / Math.max(wallMs, 0.01)) * this.#count
      this.#count = Math.max(1, Math.min(most, Math.ceil(Math.min(wanted, this.#count * 10))))
    }
  }

  async turn(): Promise<void> {
    const { isFresh } = this.#measurement
    if (isFresh) await this.#start()
    const measured = this.#children[0]!
    const residentBytes = await this.#residentBytes()
    await Promise.all(this.#children.map((child) => child.reset()))
    const { cpuMs } = await measured.usage()
    const { wallMs, units } = await this.#children.at(-1)!.turn(this.#count)
    const cpu = ((await measured.usage()).cpuMs - cpuMs) / units
    const growth = ((await this.#residentBytes()) - residentBytes) / units
    this.#samples.push({ wall: wallMs / units, cpu, growth })
    if (isFresh) await this.#stop()
  }

  async finish(): Promise<Samples> {
    if (this.#children.length > 0) await this.#stop()
    return { samples: this.#samples, peakBytes: this.#peakBytes }
  }

  kill(): void {
    for (const child of this.#children) child.kill()
  }

  async #fill(): Promise<void> {
    const { program, fill, params } = this.#contestant
    if (fill === undefined) return
    const child = new Child(program)
    this.#children = [child]
    await child.prepare(fill, { ...params, directory: this.#directory, size: this.#size })
    await this.#children.pop()!.close()
  }

  async #start(): Promise<void> {
    const { program, side, params, load } = this.#contestant
    const child = new Child(program)
    this.#children = [child]
    const info = await child.prepare(side, { ...params, directory: this.#directory, size: this.#size })
    if (load === undefined) return
    const second = new Child('load')
    this.#children.push(second)
    await second.prepare(load.side, { ...load.params, ...info, size: this.#size })
  }

  /** A turn that is not measured. */
  async #work(): Promise<Turn> {
    await Promise.all(this.#children.map((child) => child.reset()))
    return this.#children.at(-1)!.turn(this.#count)
  }

  async #residentBytes(): Promise<number> {
    return this.#isGrowthMeasured ? this.#children[0]!.residentBytes() : 0
  }

  /** The load first, whose connections the server would wait for. */
  async #stop(): Promise<void> {
    const { peakBytes } = await this.#children[0]!.usage()
    this.#peakBytes = Math.max(this.#peakBytes, peakBytes)
    for (const child of this.#children.splice(0).reverse()) await child.close()
  }
}
