import type { AppendOptions, AppendSession } from '../../src/api/append-session.ts'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { CursorOptions, RecordCursor } from '../../src/api/record-cursor.ts'
import { Stream } from '../../src/api/stream.ts'
import type { SiblingOptions } from '../../src/api/stream-options.ts'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { RedactedKey } from '../../src/model/redacted-key.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { loaded } from '../../src/runtime/lazy-module.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import { AppendRequests } from './append-requests.ts'
import type { ArgumentsOf } from './call.ts'
import type { ClientCore } from './core.ts'
import { loadAccount, loadControl } from './on-demand.ts'
import { readBatch, tailOf } from './read-requests.ts'
import { RemoteCursor } from './remote-cursor.ts'
import type { RemoteTarget } from './stream-target.ts'

type Args<Method extends keyof Stream> = ArgumentsOf<Stream[Method]>

/** A stream of a server. */
export class RemoteStream extends Stream {
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  readonly #appends: AppendRequests

  constructor(core: ClientCore, target: RemoteTarget) {
    super(target.basin, target.name, core.streamContext)
    this.#core = core
    this.#target = target
    this.#appends = new AppendRequests(core, target)
  }

  override equals(other: unknown): boolean {
    if (!(other instanceof RemoteStream) || other.#core !== this.#core) return false
    return other.#target.id === this.#target.id && RedactedKey.equal(other.#target.key, this.#target.key)
  }

  override sibling(name: string, options: SiblingOptions = {}): RemoteStream {
    return new RemoteStream(this.#core, this.#target.sibling(name, options))
  }

  override async identity(): Promise<string> {
    return `${this.#core.settings.url}/${this.#target.id}`
  }

  override async restore(): Promise<void> {
    throw new HeadwaterError('unsupported', 'servers cannot restore streams')
  }

  override append(
    records: RecordInput | readonly RecordInput[],
    options?: AppendOptions,
  ): Promise<AppendAck> {
    try {
      const batch = appendBatch(records, options)
      const signal = options?.signal
      signal?.throwIfAborted()
      this.#begin()
      const body = this.#appends.encode(batch)
      const reservation = this.#core.streamContext.reserve(batch.meteredBytes)
      const acked = this.#core
        .inOrder(this.#target.id, async () => {
          const creating = this.#core.settled(this.basinName)
          if (creating !== undefined) await creating
          signal?.throwIfAborted()
          return this.#appends.append(batch, body)
        })
        .finally(() => reservation.release())
      // The request goes on when the signal aborts: the next append must not overtake it.
      return unlessAborted(signal, acked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  override async appendSession(options?: CallOptions): Promise<AppendSession> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    this.#begin()
    const earlier = [this.#core.settled(this.basinName), this.#core.settled(this.#target.id)]
    const { openAppendSession } = await unlessAborted(
      signal,
      loaded('the code of append sessions', import('./session-appender.ts')),
    )
    await unlessAborted(signal, Promise.all(earlier))
    return openAppendSession(this.#core, this.#target, this.#appends, signal)
  }

  override async readUnary(
    query: ReadQuery,
    { signal, create }: CursorOptions & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    this.#begin()
    return this.#reading(create, () => readBatch(this.#core, this.#target, query, signal))
  }

  override async openCursor(
    query: ReadQuery,
    { create, ...options }: CursorOptions,
  ): Promise<RecordCursor | undefined> {
    this.#begin()
    return this.#reading(create, () => RemoteCursor.open(this.#core, this.#target, query, options))
  }

  override async checkTail(...[options]: Args<'checkTail'>) {
    return tailOf(this.#core, this.#target, this.#begin(options))
  }

  override async storedConfig(...args: Args<'storedConfig'>) {
    return (await loadControl()).getStreamConfig(this.#core.sender, this.basinName, this.name, ...args)
  }

  override async reconfigureStored(...args: Args<'reconfigureStored'>) {
    return (await loadControl()).reconfigureStream(this.#core.sender, this.basinName, this.name, ...args)
  }

  override async delete(...args: Args<'delete'>) {
    return (await loadControl()).deleteStream(this.#core.sender, this.basinName, this.name, ...args)
  }

  override async metrics(...args: Args<'metrics'>) {
    return (await loadAccount()).metrics(this.#core.sender, [this.basinName, this.name], ...args)
  }

  #begin(options?: CallOptions): AbortSignal | undefined {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    this.#core.closing.throwIfAborted()
    assertValid(streamNameProblem(this.name), 'stream')
    assertValid(basinNameProblem(this.basinName), 'basin')
    return signal
  }

  /** Reading creates the stream only if it is asked to. */
  #reading<Result>(create: boolean | undefined, read: () => Promise<Result>): Promise<Result> {
    if (create !== true) return read()
    return new AppendRequests(this.#core, this.#target.creating()).creatingStream(read)
  }
}
