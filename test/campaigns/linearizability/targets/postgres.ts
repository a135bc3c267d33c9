import { connect, type Headwater } from '../../../../adapters/client/index.ts'
import { Prng } from '../../../../src/runtime/random.ts'
import { Cluster } from '../../../storage/postgres/cluster.ts'
import { FORWARD, type StatementAction, WireProxy } from '../../../storage/postgres/wire-proxy.ts'
import { bundleProgram, Child } from '../../../support/child-process.ts'
import { clientsOf } from '../clients.ts'
import type { SettledTarget } from '../record-history.ts'

const PROCESSES = 3
/** The number of calls of the workload. */
const CALLS_BETWEEN_FAULTS = 190
const KINDS = ['process', 'database', 'process', 'replica'] as const

/** The probability of a fault for each statement. */
const PROBABILITY = 0.02
const STATEMENT_FAULTS: readonly StatementAction[] = [
  { kind: 'cut before' },
  { kind: 'cut after' },
  { kind: 'late' },
]

/**
 * Three processes on one database. After some calls each, a process is killed and replaced, the database
 * crashes and restarts, or a replica takes its place. Statements and their results get lost on the way.
 */
export class KilledProcesses {
  #primary: Cluster
  #proxy: WireProxy | undefined
  #services: Services | undefined
  /** Draws faults of statements; undefined for none. */
  #faults: Prng | undefined

  private constructor(primary: Cluster) {
    this.#primary = primary
  }

  static async start(): Promise<KilledProcesses> {
    const started = new KilledProcesses(await Cluster.start())
    started.#proxy = await WireProxy.start({
      port: () => started.#primary.port,
      actionOf: () => started.#nextAction(),
    })
    started.#services = await Services.start(started.#proxy.connectionString)
    return started
  }

  async stop(): Promise<void> {
    await this.#services?.stop()
    await this.#proxy?.close()
    await this.#primary.dispose()
  }

  /** The target of one history. */
  open(seed: number): SettledTarget {
    const prng = new Prng(seed)
    this.#faults = prng
    const clients = clientsOf(PROCESSES, (index) => this.#services!.reach(index), `basin-${seed}`)
    let calls = 0
    let faults = 0
    let lastFault = Promise.resolve()
    const settle = async () => {
      await lastFault
      this.#faults = undefined
    }
    return {
      connect: (stream, client) => {
        const perform = clients.connect(stream, client)
        return (operation) => {
          if (++calls % CALLS_BETWEEN_FAULTS === 0) {
            const kind = KINDS[(seed + faults++) % KINDS.length]!
            lastFault = lastFault.then(() => this.#strike(kind, prng))
          }
          return perform(operation)
        }
      },
      settle,
      async close() {
        await settle()
        await clients.endSessions()
      },
    }
  }

  #nextAction(): StatementAction {
    const prng = this.#faults
    return prng?.chance(PROBABILITY) ? prng.pick(STATEMENT_FAULTS) : FORWARD
  }

  async #strike(kind: (typeof KINDS)[number], prng: Prng): Promise<void> {
    // Statement faults would keep a process from starting.
    this.#faults = undefined
    if (kind === 'process') await this.#services!.restart(prng.below(PROCESSES))
    if (kind === 'database') {
      await this.#primary.kill()
      await this.#primary.run()
    }
    if (kind === 'replica') {
      const standby = await this.#primary.standby()
      await this.#primary.dispose()
      await standby.promote()
      this.#primary = standby
      this.#proxy!.cutAll()
    }
    this.#faults = prng
  }
}

/** A process, and its client. */
interface Service {
  readonly child: Child
  readonly remote: Headwater
}

/** Processes that serve one database, each at an address of its own while it runs. */
class Services {
  readonly #program: string
  readonly #connectionString: string
  readonly #current: Promise<Service>[] = []

  private constructor(program: string, connectionString: string) {
    this.#program = program
    this.#connectionString = connectionString
  }

  static async start(connectionString: string): Promise<Services> {
    const services = new Services(
      await bundleProgram(new URL('../service.ts', import.meta.url)),
      connectionString,
    )
    for (let index = 0; index < PROCESSES; index++) services.#current[index] = services.#start()
    await Promise.all(services.#current)
    return services
  }

  /** Resolves when the process accepts connections. */
  async reach(index: number): Promise<Headwater> {
    return (await this.#current[index]!).remote
  }

  /** Kills a process, and starts another one in its place. */
  async restart(index: number): Promise<void> {
    const { child } = await this.#current[index]!
    this.#current[index] = child.kill().then(() => this.#start())
    await this.#current[index]
  }

  async stop(): Promise<void> {
    for (const service of this.#current) {
      const { child, remote } = await service
      await remote.close()
      await child.kill()
    }
  }

  async #start(): Promise<Service> {
    const child = new Child(this.#program, [this.#connectionString])
    await child.printed(1)
    if (child.hasEnded) throw new Error('a process did not start')
    // A pause between attempts would only take time.
    const remote = await connect({ url: child.lines[0]!, retries: 2, random: () => 0 })
    return { child, remote }
  }
}
