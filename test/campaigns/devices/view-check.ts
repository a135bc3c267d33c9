import type { RecordView } from '../../../src/sync/record-view.ts'
import type { SyncedRecord } from '../../../src/sync/synced-record.ts'
import { Violation } from '../simulation/violation.ts'

/**
 * Applies the changes of a view to a list, as a user interface does, and checks that no record is shown
 * twice, that none disappears or moves, and that the changes give the view.
 */
export class ViewCheck {
  readonly #list: SyncedRecord[] = []
  #keys = new Set<string>()
  readonly #discarded: ReadonlySet<string>
  readonly #isTrimmed: (text: string) => boolean
  view: RecordView<SyncedRecord> | undefined

  /**
   * `discarded` has the keys of records that the app discarded, which leave the view. `isTrimmed` tells
   * whether a record with a text was on the server and is trimmed.
   */
  constructor(discarded: ReadonlySet<string>, isTrimmed: (text: string) => boolean) {
    this.#discarded = discarded
    this.#isTrimmed = isTrimmed
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
    if (this.#list.length !== view.length) {
      throw new Violation('the changes give the view', `${this.#list.length} of ${view.length} records`)
    }
    // A new beginning shows an empty view first.
    if (view.length === 0 && !view.isCaughtUp) return
    const isTrim = index === 0 && inserted.length === 0
    const successors = new Map(inserted.map((record) => [record.key, record]))
    for (const record of leaving) {
      const successor = successors.get(record.key)
      if (successor === undefined) {
        if (isTrim && !record.isPending) continue
        // One that was confirmed, and trimmed before the copy had it, is not shown any more.
        if (this.#discarded.has(record.key) || this.#isTrimmed(record.body)) continue
        throw new Violation('a record stays in the view', `${record.key}, ${JSON.stringify(record)}`)
      }
      if (!record.isPending && successor.seqNum !== record.seqNum) {
        throw new Violation('a confirmed record stays where it is', `${record.key}, at ${successor.seqNum}`)
      }
    }
    this.#checkOrder(view)
  }

  /** Throws unless the list has the records of the view. */
  compare(): void {
    this.view?.toArray().forEach((record, index) => {
      if (this.#list[index] !== record) throw new Violation('the changes give the view', record.key)
    })
  }

  #checkOrder(view: RecordView<SyncedRecord>): void {
    const { confirmedLength, change } = view
    for (let index = Math.max(change.index, 1); index < confirmedLength; index++) {
      if (view.at(index)!.seqNum! > view.at(index - 1)!.seqNum!) continue
      throw new Violation('confirmed records are in the order of the server', view.at(index)!.key)
    }
    const numbers = view.pending.map(({ origin }) => origin!.number)
    if (numbers.some((number, index) => index > 0 && number <= numbers[index - 1]!)) {
      throw new Violation('pending records are in the order of their numbers', numbers.join(' '))
    }
  }
}
