import { shownName, wholeQuery } from '../../core/auto-prefix.ts'
import { type Grant, permits } from '../../core/permission.ts'
import { EMPTY_PAGE, scopedQuery, withinSet } from '../../core/scoped-list.ts'
import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../../model/config.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../model/info.ts'
import type { StreamRef } from '../context.ts'
import { permissionDenied } from '../errors.ts'
import type { StreamService } from '../services.ts'
import { type Gate, prefixed } from './gate.ts'

/** Streams, as a caller may use them, by the names that the caller has for them (wire-behaviour.md 9.8). */
export class GatedStreams implements StreamService {
  readonly #gate: Gate
  readonly #streams: StreamService

  constructor(gate: Gate, streams: StreamService) {
    this.#gate = gate
    this.#streams = streams
  }

  create(
    ref: StreamRef,
    config: StreamConfigInput,
    requestToken: string | undefined,
  ): Promise<Provisioned<StreamInfo>> {
    return this.#gate.run('create-stream', ref, async (grant) =>
      shown(grant, await this.#streams.create(prefixed(grant, ref), config, requestToken)),
    )
  }

  /** Creating and changing are permitted each by themselves; one of them has to be (rulings.md "Tokens"). */
  async ensure(ref: StreamRef, config: StreamConfigInput): Promise<Provisioned<StreamInfo>> {
    const { grant } = await this.#gate.permit(['create-stream', 'reconfigure-stream'], ref)
    const meant = prefixed(grant, ref)
    const provisioned = await this.#streams.ensure(meant, config, (change) => {
      const operation = change === 'create' ? 'create-stream' : 'reconfigure-stream'
      if (!permits(grant, operation, meant)) throw permissionDenied()
    })
    return shown(grant, provisioned)
  }

  list(basin: string, query: ListQuery): Promise<Page<StreamInfo>> {
    return this.#gate.run('list-streams', { basin }, async (grant) => {
      const { streams } = grant.scope
      const scoped = scopedQuery(streams, wholeQuery(grant, query))
      if (scoped === undefined) {
        // A basin that is missing is told all the same.
        await this.#streams.list(basin, { ...query, limit: 1 })
        return EMPTY_PAGE
      }
      const page = withinSet(streams, await this.#streams.list(basin, scoped), ({ name }) => name)
      return { items: page.items.map((info) => shownInfo(grant, info)), hasMore: page.hasMore }
    })
  }

  config(ref: StreamRef): Promise<StreamConfig> {
    return this.#gate.run('get-stream-config', ref, (grant) => this.#streams.config(prefixed(grant, ref)))
  }

  reconfigure(ref: StreamRef, change: StreamReconfiguration): Promise<StreamConfig> {
    return this.#gate.run('reconfigure-stream', ref, (grant) =>
      this.#streams.reconfigure(prefixed(grant, ref), change),
    )
  }

  delete(ref: StreamRef): Promise<void> {
    return this.#gate.run('delete-stream', ref, (grant) => this.#streams.delete(prefixed(grant, ref)))
  }
}

function shown(grant: Grant, { result, info }: Provisioned<StreamInfo>): Provisioned<StreamInfo> {
  return { result, info: shownInfo(grant, info) }
}

function shownInfo(grant: Grant, info: StreamInfo): StreamInfo {
  return { ...info, name: shownName(grant, info.name) }
}
