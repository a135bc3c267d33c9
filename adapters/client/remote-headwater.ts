import { signalOf } from '../../src/api/call-options.ts'
import { BASIN_OPTIONS, type BasinOptions, Headwater } from '../../src/api/headwater.ts'
import { assertMembers, notText } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ArgumentsOf } from './call.ts'
import type { ClientCore } from './core.ts'
import { loadAccount, loadControl } from './on-demand.ts'
import { RemoteBasin } from './remote-basin.ts'

type Args<Method extends keyof Headwater> = ArgumentsOf<Headwater[Method]>

/** A server, or the hosted service. */
export class RemoteHeadwater extends Headwater {
  readonly #core: ClientCore

  constructor(core: ClientCore) {
    super()
    this.#core = core
  }

  override get closing(): AbortSignal {
    return this.#core.closing.asAbortSignal()
  }

  override basin(name: string, options: BasinOptions = {}): RemoteBasin {
    if (typeof name !== 'string') throw notText('basin')
    assertMembers(options, BASIN_OPTIONS, 'options')
    const autoCreate = options.autoCreate ?? this.#core.settings.autoCreate
    return new RemoteBasin(this.#core, name, autoCreate)
  }

  override createBasin(...args: Args<'createBasin'>) {
    return this.#core.creating(args[0], loadControl, ({ createBasin }) =>
      createBasin(this.#core.sender, ...args),
    )
  }

  override ensureBasin(...args: Args<'ensureBasin'>) {
    return this.#core.creating(args[0], loadControl, ({ ensureBasin }) =>
      ensureBasin(this.#core.sender, ...args),
    )
  }

  override async listBasins(...args: Args<'listBasins'>) {
    return (await loadControl()).listBasins(this.#core.sender, ...args)
  }

  override async issueAccessToken(...args: Args<'issueAccessToken'>) {
    return (await loadAccount()).issueAccessToken(this.#core.sender, ...args)
  }

  override async listAccessTokens(...args: Args<'listAccessTokens'>) {
    return (await loadAccount()).listAccessTokens(this.#core.sender, ...args)
  }

  override async revokeAccessToken(...args: Args<'revokeAccessToken'>) {
    return (await loadAccount()).revokeAccessToken(this.#core.sender, ...args)
  }

  override async metrics(...args: Args<'metrics'>) {
    return (await loadAccount()).metrics(this.#core.sender, [], ...args)
  }

  override async close(...[options]: Args<'close'>) {
    await unlessAborted(signalOf(options), this.#core.close())
  }

  override async [Symbol.asyncDispose]() {
    await this.close()
  }
}
