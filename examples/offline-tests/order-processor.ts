import {
  AppendInput,
  AppendRecord,
  FencingTokenMismatchError,
  type ReadRecord,
  type S2Basin,
  type S2Stream,
  SeqNumMismatchError,
} from '@s2-dev/streamstore'

/** What `shipments` has of each order, as JSON. */
export interface Shipment {
  /** The sequence number of the order in `orders`. */
  readonly order: number
  readonly goods: string
}

/**
 * Ships orders: follows the stream `orders`, and appends to `shipments` what it did. Each order is shipped once, in order, whatever fails in between, and by one processor at a
 * time: the one that was started last. Names must differ.
 *
 * Resolves to why it ended. Rejects with the client's error when the service could not be reached or has refused, also after several attempts: then start another one.
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

/** The stream `shipments`, while nobody else may append to it. */
class Ledger {
  readonly #stream: S2Stream
  readonly #name: string
  /** Where the next shipment goes. */
  #seqNum: number
  #nextOrder: number

  private constructor(stream: S2Stream, name: string, seqNum: number, nextOrder: number) {
    this.#stream = stream
    this.#name = name
    this.#seqNum = seqNum
    this.#nextOrder = nextOrder
  }

  /** From now on appends of other processors are refused. What they appended before counts. */
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
      // Something is there already. When it is this shipment, an attempt was made whose answer got lost.
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
