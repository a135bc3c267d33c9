import { AppendSession } from './append-session.ts'
import { Background } from './background.ts'
import type { EngineContext } from './context.ts'
import { Control } from './control/index.ts'
import { Streams } from './control/streams.ts'
import { createOnFirstUse } from './first-use.ts'
import { Gathering } from './gathering.ts'
import { pipelined } from './pipeline.ts'
import { Usage } from './usage/usage.ts'

// Bundlers that split code make a chunk for each set of late parts that share something. Here all of it comes together: this module
// reaches everything that an engine begins with, and other late parts import what they share with it from here. So there is one chunk.
export { counted } from './control/counted.ts'
export { checkCipher } from './encryption/check-cipher.ts'
/** @public For what it reaches; nobody imports it. */
export { open } from './open.ts'

/**
 * What an engine does beside appending and reading: the control plane, the background work, the usage metrics. In one piece with the sessions of
 * appends, which is loaded when the engine is in use already: see `late-rest.ts`.
 */
export class Rest {
  readonly streams: Streams
  readonly control: Control
  readonly background: Background
  readonly usage: Usage
  readonly createOnFirstUse = createOnFirstUse
  readonly AppendSession = AppendSession
  readonly pipelined = pipelined
  readonly Gathering = Gathering

  constructor(engine: EngineContext) {
    this.usage = new Usage(engine)
    this.streams = new Streams(engine)
    this.control = new Control(engine, this.streams, this.usage)
    this.background = new Background(engine, this.streams, () => this.usage.maintain())
  }

  /** From now on it works by itself. The number is a random one, for {@link Background.start}. */
  start(chance: number): void {
    this.background.start(chance)
    this.usage.start()
  }

  async close(): Promise<void> {
    await this.background.close()
    await this.usage.close()
  }
}
