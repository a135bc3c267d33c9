import type { RecordView, SyncedRecord } from '../../../adapters/sync/index.ts'
import { Violation } from '../harness/violation.ts'

/**
 * Applies the changes of a view to a list, as a user interface does, and checks that no record is shown
 * twice, that none disappears or moves, and that the changes give the view.
 */
export class ViewCheck {
  readonly #list: SyncedRecord[] = []
  readonly #keys = new Set<string>()
  readonly #mayLeave: (text: string) => boolean
  view: RecordView<SyncedRecord> | undefined

  /**
   * `mayLeave` tells whether a record with a text may leave the view: the app discarded it, or it was
   * confirmed where the copy has none.
   */
  constructor(mayLeave: (text: string) => boolean) {
    this.#mayLeave = mayLeave
  }

  next(view: RecordView<SyncedRecord>): void {
    const { index, removed, inserted } = view.change
    const leaving = this.#list.splice(index, removed, ...inserted)
    this.view = view
    for (const { key } of leaving) this.#keys.delete(key)
    for (const { key } of inserted) {
      if (this.#keys.has(key)) throw new Violation('a record is shown once', key)
      this.#keys.add(key)
    }
    if (this.#list.length !== view.length)
      throw new Violation('the changes give the view', `${this.#list.length} of ${view.length} records`)
    // A new beginning shows an empty view first.
    if (view.length === 0 && !view.isCaughtUp) return
    const isTrim = index === 0 && inserted.length === 0
    const successors = new Map(inserted.map((record) => [record.key, record]))
    for (const record of leaving) {
      const successor = successors.get(record.key)
      if (successor === undefined) {
        if ((isTrim && !record.isPending) || this.#mayLeave(record.body)) continue
        throw new Violation('a record stays in the view', JSON.stringify(record))
      }
      if (!record.isPending && successor.seqNum !== record.seqNum)
        throw new Violation('a confirmed record stays where it is', `${record.key}, at ${successor.seqNum}`)
    }
    this.#checkOrder(view)
  }

  /** Throws unless the list has the records of the view. */
  compare(): void {
    this.view?.toArray().forEach((record, index) => {
      if (this.#list[index] !== record) throw new Violation('the changes give the view', record.key)
    })
  }

  /** Confirmed records are in the order of the server, pending ones in that of their numbers. */
  #checkOrder({ confirmedLength, pending }: RecordView<SyncedRecord>): void {
    const places = [
      ...this.#list.slice(0, confirmedLength).map(({ seqNum }) => seqNum!),
      ...pending.map(({ origin }) => origin!.number),
    ]
    const isOrdered = (place: number, index: number) =>
      index === 0 || index === confirmedLength || place > places[index - 1]!
    if (places.every(isOrdered)) return
    throw new Violation('records are shown in their order', places.join(' '))
  }
}
