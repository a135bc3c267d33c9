import { type Basin, open, type Storage, type Stream } from 'headwater'
import { defer, merge, type Observable, Subject, startWith, switchMap } from 'rxjs'
import { Room } from './room.ts'

const PREFIX = 'rooms/'
const LIST_LIMIT = 1000
/** Something that can be seen: not only spaces, controls and marks. */
const VISIBLE = /[^\p{C}\p{M}\p{Z}]/u

/** All rooms of this browser. There is no server: each tab opens the storage for itself, and they follow the same streams. */
export class Chat {
  readonly #basin: Basin
  /** Gets a record for each new room, so that other tabs list the rooms again. */
  readonly #additions: Stream
  readonly #listAgain = new Subject<void>()

  private constructor(basin: Basin) {
    this.#basin = basin
    this.#additions = basin.stream('added-rooms')
  }

  static async open(storage: Storage, basinName: string): Promise<Chat> {
    const hw = await open({ storage })
    try {
      await hw.ensureBasin(basinName)
      // Streams are made by name only where a room is wanted: an address with a wrong name must not make one.
      const basin = hw.basin(basinName, { autoCreate: false })
      await basin.ensureStream('added-rooms')
      return new Chat(basin)
    } catch (error) {
      await hw.close()
      throw error
    }
  }

  room(name: string): Room {
    return new Room(name, this.#basin.stream(PREFIX + name))
  }

  /** Makes a room, unless there is one of this name: another tab may be making it right now. Resolves to its name. */
  async createRoom(input: string): Promise<string> {
    // What looks the same is the same room.
    const name = input.normalize().trim().replace(/\s+/g, ' ')
    if (!VISIBLE.test(name)) throw new RangeError('Give the room a name.')
    const { result } = await this.#basin.ensureStream(PREFIX + name)
    if (result === 'created') await this.#additions.append(name)
    return name
  }

  /** The names of all rooms, and again whenever one was added, in any tab. */
  get roomNames$(): Observable<readonly string[]> {
    // The tail comes before the first list, so that no room is added unseen in between.
    return defer(() => this.#additions.checkTail()).pipe(
      switchMap(({ seqNum }) =>
        merge(this.#additions.read({ seqNum }).records$, this.#listAgain).pipe(startWith(undefined)),
      ),
      switchMap(() => this.#roomNames()),
    )
  }

  /** For when rooms may have come or gone in another way, by the wire protocol for instance. */
  listAgain(): void {
    this.#listAgain.next()
  }

  async #roomNames(): Promise<readonly string[]> {
    const names: string[] = []
    for (let startAfter = ''; ; ) {
      const page = await this.#basin.listStreams({ prefix: PREFIX, startAfter, limit: LIST_LIMIT })
      names.push(...page.items.map(({ name }) => name.slice(PREFIX.length)))
      if (!page.hasMore) return names
      startAfter = PREFIX + names.at(-1)
    }
  }
}
