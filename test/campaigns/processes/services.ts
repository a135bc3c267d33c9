import { bundleProgram, Child } from '../../support/child-process.ts'
import { reservedPort } from '../../support/port.ts'

type Arguments = (port: string) => readonly string[]

/** Processes that serve one database. */
export class Services {
  readonly #program: string
  readonly #arguments: Arguments
  readonly #children: Child[]
  readonly #ports: readonly string[]
  readonly #restarting = new Map<number, Promise<void>>()

  private constructor(program: string, of: Arguments, children: Child[], ports: readonly string[]) {
    this.#program = program
    this.#arguments = of
    this.#children = children
    this.#ports = ports
  }

  static async start(connectionString: string, count: number, trimGraceMs = 10_000): Promise<Services> {
    const of: Arguments = (port) => [connectionString, port, `${trimGraceMs}`]
    const program = await bundleProgram(new URL('./service.ts', import.meta.url))
    const ports = await Promise.all(Array.from({ length: count }, async () => `${await reservedPort()}`))
    const children = ports.map((port) => new Child(program, of(port)))
    for (const child of children) {
      await child.printed(1)
      if (child.hasEnded) throw new Error('a service did not start')
    }
    return new Services(program, of, children, ports)
  }

  urlOf(service: number): string {
    return `http://127.0.0.1:${this.#ports[service]}`
  }

  /** Resolves when the process accepts connections. */
  async ready(service: number): Promise<void> {
    await this.#restarting.get(service)
  }

  /** Kills a process, and starts another one on its port. */
  async restart(service: number): Promise<void> {
    await this.ready(service)
    const restarting = this.#restart(service)
    this.#restarting.set(service, restarting)
    await restarting
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()))
  }

  async #restart(service: number): Promise<void> {
    await this.#children[service]!.kill()
    const child = new Child(this.#program, this.#arguments(this.#ports[service]!))
    this.#children[service] = child
    await child.printed(1)
    if (child.hasEnded) throw new Error('a service did not start again')
  }
}
