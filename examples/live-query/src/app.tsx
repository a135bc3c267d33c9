import { eq } from '@tanstack/db'
import { useLiveQuery } from '@tanstack/react-db'
import { type FormEvent, useState } from 'react'
import type { List } from './items.ts'

const SHOPS = ['Market', 'Bakery']

/** The items of a shop that are not bought yet, and how many there are in all. */
export function App({ list }: { readonly list: List }) {
  const [shop, setShop] = useState(SHOPS[0]!)
  const [name, setName] = useState('')
  const { items } = list.collections
  const { data: wanted } = useLiveQuery(
    (query) =>
      query
        .from({ item: items })
        .where(({ item }) => eq(item.shop, shop))
        .where(({ item }) => eq(item.isBought, false))
        .orderBy(({ item }) => item.name),
    [shop],
  )
  const { data: all } = useLiveQuery((query) => query.from({ item: items }))

  function add(event: FormEvent) {
    event.preventDefault()
    if (name.trim() === '') return
    void list.actions.add({ id: crypto.randomUUID(), name: name.trim(), shop, isBought: false })
    setName('')
  }

  return (
    <>
      <h1>Shopping list</h1>
      <form onSubmit={add}>
        <input type="text" aria-label="Item" value={name} onChange={(event) => setName(event.target.value)} />
        <select aria-label="Shop" value={shop} onChange={(event) => setShop(event.target.value)}>
          {SHOPS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <button type="submit">Add</button>
      </form>
      <ul aria-label="Items">
        {wanted.map((item) => (
          <li key={item.id}>
            <input
              id={item.id}
              type="checkbox"
              checked={false}
              onChange={() => void list.actions.change({ ...item, isBought: true })}
            />
            <label htmlFor={item.id}>{item.name}</label>
          </li>
        ))}
      </ul>
      <p role="status">
        {all.filter(({ isBought }) => isBought).length} of {all.length} bought
      </p>
    </>
  )
}
