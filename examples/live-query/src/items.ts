import { createStateSchema } from '@durable-streams/state'
import { createStreamDB } from '@durable-streams/state/db'

/** Something to buy. */
export interface Item {
  readonly id: string
  readonly name: string
  readonly shop: string
  readonly isBought: boolean
}

type ItemResult = { readonly value: Item } | { readonly issues: readonly { readonly message: string }[] }

/** Checks what the stream contains: other programs may append to it too. */
const itemSchema = {
  '~standard': {
    version: 1 as const,
    vendor: 'shopping-list',
    types: undefined as { readonly input: Item; readonly output: Item } | undefined,
    validate(value: unknown): ItemResult {
      const { id, name, shop, isBought } = (value ?? {}) as Partial<Item>
      if (typeof id === 'string' && typeof name === 'string' && typeof shop === 'string') {
        return { value: { id, name, shop, isBought: isBought === true } }
      }
      return { issues: [{ message: 'an item has an id, a name and a shop' }] }
    },
  },
}

const schema = createStateSchema({ items: { schema: itemSchema, type: 'item', primaryKey: 'id' } })

/** Opens the list: a table that follows from all events of a stream, and changes with each new one. */
export function openList(url: string) {
  return createStreamDB({
    streamOptions: { url, contentType: 'application/json' },
    // Survives a restart of the server, which ends an event stream for good.
    live: 'long-poll',
    state: schema,
    actions: ({ db, stream }) => ({
      add: {
        onMutate: (item: Item) => {
          db.collections.items.insert(item)
        },
        mutationFn: async (item: Item) => {
          const txid = crypto.randomUUID()
          await stream.append(JSON.stringify(schema.items.insert({ value: item, headers: { txid } })))
          await db.utils.awaitTxId(txid)
        },
      },
      change: {
        onMutate: (item: Item) => {
          db.collections.items.update(item.id, (draft) => {
            Object.assign(draft, item)
          })
        },
        mutationFn: async (item: Item) => {
          const txid = crypto.randomUUID()
          await stream.append(JSON.stringify(schema.items.update({ value: item, headers: { txid } })))
          await db.utils.awaitTxId(txid)
        },
      },
    }),
  })
}

export type List = ReturnType<typeof openList>
