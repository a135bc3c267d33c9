import { Basin } from '../../src/api/basin.ts'
import { STREAM_OPTIONS, type StreamOptions } from '../../src/api/stream-options.ts'
import { assertMembers, notText } from '../../src/model/validation.ts'
import type { ArgumentsOf } from './call.ts'
import type { ClientCore } from './core.ts'
import { loadAccount, loadControl } from './on-demand.ts'
import { RemoteStream } from './remote-stream.ts'
import { RemoteTarget, streamId } from './stream-target.ts'

type Args<Method extends keyof Basin> = ArgumentsOf<Basin[Method]>

/** A basin of a server. */
export class RemoteBasin extends Basin {
  readonly #core: ClientCore
  readonly #autoCreate: boolean

  constructor(core: ClientCore, name: string, autoCreate: boolean) {
    super(name)
    this.#core = core
    this.#autoCreate = autoCreate
  }

  override stream(name: string, options: StreamOptions = {}): RemoteStream {
    if (typeof name !== 'string') throw notText('stream')
    assertMembers(options, STREAM_OPTIONS, 'options')
    return new RemoteStream(this.#core, new RemoteTarget(this.name, name, options, this.#autoCreate))
  }

  override createStream(...args: Args<'createStream'>) {
    return this.#creating(args[0], ({ createStream }) => createStream(this.#core.sender, this.name, ...args))
  }

  override ensureStream(...args: Args<'ensureStream'>) {
    return this.#creating(args[0], ({ ensureStream }) => ensureStream(this.#core.sender, this.name, ...args))
  }

  override async listStreams(...args: Args<'listStreams'>) {
    return (await loadControl()).listStreams(this.#core.sender, this.name, ...args)
  }

  override async storedConfig(...args: Args<'storedConfig'>) {
    return (await loadControl()).getBasinConfig(this.#core.sender, this.name, ...args)
  }

  override async reconfigureStored(...args: Args<'reconfigureStored'>) {
    return (await loadControl()).reconfigureBasin(this.#core.sender, this.name, ...args)
  }

  override async delete(...args: Args<'delete'>) {
    return (await loadControl()).deleteBasin(this.#core.sender, this.name, ...args)
  }

  override async metrics(...args: Args<'metrics'>) {
    return (await loadAccount()).metrics(this.#core.sender, [this.name], ...args)
  }

  async #creating<Result>(
    name: string,
    create: (control: Awaited<ReturnType<typeof loadControl>>) => Promise<Result>,
  ): Promise<Result> {
    const load = async () => {
      await this.#core.settled(this.name)
      return loadControl()
    }
    // Not checked yet: it may be a symbol.
    return this.#core.creating(streamId(this.name, String(name)), load, create)
  }
}
