import {
  AppendInput,
  AppendRecord,
  FencingTokenMismatchError,
  type ReadRecord,
  type S2Basin,
  type S2Stream,
  SeqNumMismatchError,
} from '@s2-dev/streamstore'

/** A record of `shipments`, as JSON. */
export interface Shipment {
  /** The sequence number of the order in `orders`. */
  readonly order: number
  readonly goods: string
}

/**
 * Ships orders: follows the stream `orders` and appends to `shipments`. Each order is shipped once and in
 * order, despite failures. Only the processor that was started last is active. Names must be unique.
 *
 * Resolves to the reason for its end. Rejects with the client's error if the service fails even after
 * retries; then start another processor.
 */
export async function processOrders(
  basin: S2Basin,
  name: string,
  signal: AbortSignal,
): Promise<'stopped' | 'superseded'> {
  const orders = basin.stream('orders')
  const shipments = basin.stream('shipments')
  try {
    const ledger = await Ledger.takeOver(shipments, name)
    const session = await orders.readSession({ start: { from: { seqNum: ledger.nextOrder } } }, { signal })
    for await (const order of session) await ledger.ship(order)
    return 'stopped'
  } catch (error) {
    if (signal.aborted) return 'stopped'
    if (error instanceof FencingTokenMismatchError) return 'superseded'
    throw error
  } finally {
    await Promise.all([orders.close(), shipments.close()])
  }
}

/** Exclusive access to the stream `shipments`. */
class Ledger {
  readonly #stream: S2Stream
  readonly #name: string
  /** The sequence number of the next shipment. */
  #seqNum: number
  #nextOrder: number

  private constructor(stream: S2Stream, name: string, seqNum: number, nextOrder: number) {
    this.#stream = stream
    this.#name = name
    this.#seqNum = seqNum
    this.#nextOrder = nextOrder
  }

  /** Fences off other processors, and finds the next order from what they have shipped. */
  static async takeOver(stream: S2Stream, name: string): Promise<Ledger> {
    const { end } = await stream.append(AppendInput.create([AppendRecord.fence(name)]))
    let nextOrder = 0
    const session = await stream.readSession({
      start: { from: { seqNum: 0 } },
      stop: { limits: { count: end.seqNum } },
      ignoreCommandRecords: true,
    })
    for await (const { body } of session) nextOrder = (JSON.parse(body) as Shipment).order + 1
    return new Ledger(stream, name, end.seqNum, nextOrder)
  }

  get nextOrder(): number {
    return this.#nextOrder
  }

  async ship({ seqNum, body: goods }: ReadRecord): Promise<void> {
    const shipment: Shipment = { order: seqNum, goods }
    const record = AppendRecord.string({ body: JSON.stringify(shipment) })
    try {
      await this.#stream.append(
        AppendInput.create([record], { fencingToken: this.#name, matchSeqNum: this.#seqNum }),
      )
    } catch (error) {
      // If the existing record is this shipment, an earlier attempt succeeded and its response was lost.
      if (!(error instanceof SeqNumMismatchError) || !(await this.#hasShipped(shipment))) throw error
    }
    this.#seqNum++
    this.#nextOrder = seqNum + 1
  }

  async #hasShipped(shipment: Shipment): Promise<boolean> {
    const { records } = await this.#stream.read({
      start: { from: { seqNum: this.#seqNum } },
      stop: { limits: { count: 1 } },
    })
    return records[0]?.body === JSON.stringify(shipment)
  }
}
