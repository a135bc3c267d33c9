import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Engine, OPERATIONS } from '../../../src/index.ts'
import { type Cell, parseTable, type Row } from './cells.ts'
import type { Performer } from './perform.ts'
import { ACCOUNT_TABLE, BASIN_TABLE, ENSURE_TABLE, STREAM_TABLE } from './table.ts'
import { makeToken, TOKENS } from './tokens.ts'
import { BASINS, exists, restore, STREAMS, snapshot, TOKEN_IDS } from './world.ts'

/** A service that the table is run against. */
export interface AccessService {
  /** Its engine, as the owner of the process sees it. */
  readonly owner: Engine
  /** Calls it with this token. */
  as(token: string): Performer
  /** Advances its time. */
  advance(ms: number): Promise<void>
  /** Runs its background work. */
  settle(): Promise<void>
  close(): Promise<void>
}

type Resources = Readonly<Record<string, string | readonly [basin: string, stream: string]>>

/**
 * The resources of each operation, and its outcome where it is permitted: on existing resources, and on
 * missing ones.
 */
const KINDS: Readonly<Record<string, readonly [Resources, existing: string, missing: string]>> = {
  'create-basin': [BASINS, '409', 'ok'],
  'delete-basin': [BASINS, 'ok', '404'],
  'reconfigure-basin': [BASINS, 'ok', '404'],
  'get-basin-config': [BASINS, 'ok', '404'],
  'issue-access-token': [TOKEN_IDS, '409', 'ok'],
  'revoke-access-token': [TOKEN_IDS, 'ok', '404'],
  'create-stream': [STREAMS, '409', 'ok'],
  'delete-stream': [STREAMS, 'ok', '404'],
  'get-stream-config': [STREAMS, 'ok', '404'],
  'reconfigure-stream': [STREAMS, 'ok', '404'],
  // Whether what they are about exists makes no difference to them (docs/protocol.md "Metrics queries").
  'basin-metrics': [BASINS, 'ok', 'ok'],
  'check-tail': [STREAMS, 'ok', '404'],
  append: [STREAMS, 'ok', '404'],
  read: [STREAMS, 'ok', '404'],
  trim: [STREAMS, 'ok', '404'],
  fence: [STREAMS, 'ok', '404'],
  'stream-metrics': [STREAMS, 'ok', 'ok'],
}

/** The resources are restored after each permitted change. */
const PERMITTING_MUCH = [
  'root',
  'every op',
  'prefixed',
  'acme',
  'account read',
  'account write',
  'stream write',
]

/** Defines a test for each token: every operation on every resource, against the table. */
export function describeAccessTable(title: string, start: () => Promise<AccessService>): void {
  const tables = [ACCOUNT_TABLE, BASIN_TABLE, STREAM_TABLE].map(parseTable)
  const rowOf = (name: string): Row => new Map(tables.flatMap((table) => [...table.get(name)!]))

  describe(title, () => {
    let service: AccessService
    beforeEach(async () => {
      service = await start()
    })
    afterEach(() => service.close())

    it('has a cell for each token and operation', () => {
      for (const table of tables) expect([...table.keys()]).toEqual(Object.keys(TOKENS))
      const columns = [...rowOf('root').keys()].filter((column) => column !== 'shows')
      expect(columns.sort()).toEqual([...OPERATIONS].sort())
    })

    const everyOperation = async (name: string) => {
      const row = rowOf(name)
      const run = new TableRun(service, name)
      await run.prepare()
      for (const operation of OPERATIONS) {
        const cell = row.get(operation)!
        if (operation === 'list-basins') await run.list(operation, cell, { A: 'acme-main', B: 'other-main' })
        else if (operation === 'list-access-tokens') await run.list(operation, cell, TOKEN_IDS)
        else if (operation === 'list-streams') await run.listStreams(cell, row.get('shows')!)
        else if (operation in KINDS) await run.eachResource(operation, cell)
        else await run.check(operation, cell.text === 'yes' ? 'ok' : refusalOf(cell), operation)
      }
      run.report()
    }

    it.each(Object.keys(TOKENS).filter((name) => !PERMITTING_MUCH.includes(name)))('%s', everyOperation)
    it.each(PERMITTING_MUCH)('%s', { tags: ['slow'] }, everyOperation)

    it.each([...parseTable(ENSURE_TABLE)])('ensures basins and streams: %s', async (name, row) => {
      const run = new TableRun(service, name)
      await run.prepare()
      for (const [column, cell] of row) await run.ensure(column, cell)
      run.report()
    })
  })
}

/** The status with which a cell rejects operations that it does not permit. */
function refusalOf(cell: Cell): string {
  return cell.isUnauthorized ? '401' : '403'
}

/** Performs the operations of one token, and collects the differences from the table. */
class TableRun {
  readonly #service: AccessService
  readonly #name: string
  #performer!: Performer
  readonly #differences: string[] = []
  /** What the last snapshot has shown, unless the resources were restored since. */
  #state: string | undefined
  /** The messages by status: those of 401 and 403 name the operation, and nothing about the resource. */
  readonly #messages = new Map<string, Set<string>>()

  constructor(service: AccessService, name: string) {
    this.#service = service
    this.#name = name
  }

  async prepare(): Promise<void> {
    const { owner } = this.#service
    await restore(owner, () => this.#service.settle())
    const advance = (ms: number) => this.#service.advance(ms)
    this.#performer = this.#service.as(await makeToken(owner, this.#name, advance))
  }

  report(): void {
    expect(this.#differences).toEqual([])
    for (const messages of this.#messages.values()) expect([...messages]).toHaveLength(1)
  }

  async eachResource(operation: string, cell: Cell): Promise<void> {
    const [resources, existing, missing] = KINDS[operation]!
    for (const letter of Object.keys(resources)) {
      const isExisting = exists(letter) && !cell.elsewhere.has(letter)
      const lacksBasin = operation === 'create-stream' && withoutBasin(letter)
      const permitted = isExisting ? existing : lacksBasin ? '404' : missing
      const expected = cell.letters.has(letter) ? permitted : refusalOf(cell)
      await this.check(
        operation,
        expected,
        `${operation} ${letter}`,
        ...this.#namesForHolder(resources[letter]!),
      )
    }
  }

  /** Lists resources. Those without a letter in the table are ignored. */
  async list(
    operation: 'list-basins' | 'list-access-tokens',
    cell: Cell,
    names: Readonly<Record<string, string>>,
  ) {
    const listed = await this.#names(operation)
    const letters = ['A', 'B'].filter((letter) => listed?.includes(names[letter]!)).join('')
    const found = listed === undefined ? undefined : letters || '0'
    if (found === undefined) await this.check(operation, refusalOf(cell), operation)
    else if (found !== cell.text) this.#differences.push(`${operation}: ${found}, not ${cell.text}`)
  }

  async listStreams(cell: Cell, shows: Cell): Promise<void> {
    for (const [letter, basin] of Object.entries(BASINS)) {
      const isPermitted = cell.letters.has(letter)
      const expected = isPermitted ? (exists(letter) ? 'ok' : '404') : refusalOf(cell)
      const description = `list-streams ${letter}`
      await this.check('list-streams', expected, description, basin)
      if (expected !== 'ok') continue
      const expectedNames = (letter === 'A' ? ['B', 'A'] : ['C'])
        .filter((stream) => shows.letters.has(stream))
        .map((stream) => this.#namesForHolder(STREAMS[stream as 'A'])[1])
      const names = (await this.#names('list-streams', basin)) ?? []
      if (names.join() !== expectedNames.join())
        this.#differences.push(`${description} shows ${names}, not ${expectedNames}`)
    }
  }

  async ensure(column: string, cell: Cell): Promise<void> {
    const [kind, state] = column.split(' ') as ['basin' | 'stream', 'new' | 'change' | 'same']
    const resources: Resources = kind === 'basin' ? BASINS : STREAMS
    for (const letter of Object.keys(resources).filter((letter) => exists(letter) === (state !== 'new'))) {
      const permitted = kind === 'stream' && withoutBasin(letter) ? '404' : 'ok'
      const expected = cell.letters.has(letter) ? permitted : refusalOf(cell)
      const config = state === 'change' ? 'other' : 'same'
      const names = this.#namesForHolder(resources[letter]!)
      await this.check(`ensure-${kind}`, expected, `${column} ${letter}`, ...names, config)
    }
  }

  /** Performs an operation and restores the resources. A rejected operation must have no effect. */
  async check(operation: string, expected: string, description: string, ...names: string[]): Promise<void> {
    const { owner } = this.#service
    this.#state ??= await snapshot(owner)
    const outcome = await this.#outcome(operation, names)
    if (outcome !== expected) this.#differences.push(`${description}: ${outcome}, not ${expected}`)
    if ((await snapshot(owner)) === this.#state) return
    this.#state = undefined
    if (outcome !== 'ok') this.#differences.push(`${description}: ${outcome}, but it had an effect`)
    await restore(owner, () => this.#service.settle())
  }

  async #outcome(operation: string, names: readonly string[]): Promise<string> {
    try {
      await (this.#performer as unknown as Record<string, (...names: string[]) => Promise<unknown>>)[
        operation
      ]!(...names)
      return 'ok'
    } catch (error) {
      const { status, message } = error as { status?: number; message: string }
      if (status === undefined) throw error
      if (status === 401 || status === 403) {
        const stated = message.replace(/(?<=does not permit )[a-z- ]+$/, 'it')
        this.#messages.set(`${status}`, (this.#messages.get(`${status}`) ?? new Set()).add(stated))
      }
      return `${status}`
    }
  }

  async #names(
    operation: 'list-basins' | 'list-access-tokens' | 'list-streams',
    ...names: [string?]
  ): Promise<readonly string[] | undefined> {
    return (this.#performer[operation] as (basin?: string) => Promise<readonly string[]>)(...names).catch(
      () => undefined,
    )
  }

  /** The names that the holder of the token uses. */
  #namesForHolder(resource: string | readonly [basin: string, stream: string]): string[] {
    if (typeof resource === 'string') return [resource]
    const [basin, stream] = resource
    const { autoPrefixStreams } = TOKENS[this.#name]!
    return [basin, autoPrefixStreams ? stream.replace(/^logs\//, '') : stream]
  }
}

/** Whether the stream with this letter is in a basin that does not exist. */
function withoutBasin(letter: string): boolean {
  return letter === 'd' || letter === 'e'
}
