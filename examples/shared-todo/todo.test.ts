import fc from 'fast-check'
import { open } from 'headwater'
import { connect } from 'headwater/client'
import { createHandler } from 'headwater/http'
import { memory } from 'headwater/memory'
import { faultyHandler, virtualClock } from 'headwater/testing'
import { expect, test } from 'vitest'
import { EMPTY, reduceTodo, type TodoEvent, type TodoState } from './src/todo.ts'
import { TodoList } from './src/todo-list.ts'
import { actionOf, reversalOf } from './src/undo.ts'

const titlesOf = (list: TodoList) => list.state.value.tasks.map(({ title }) => title)

test('two devices that were offline converge, and undo reaches the other one', async () => {
  const clock = virtualClock()
  const server = await open({ storage: memory(), clock })
  await server.basin('todo').stream('lists/shared').append('not an event of the app')
  const network = faultyHandler(createHandler(server, { auth: 'none' }), { clock })
  const device = async () => {
    const local = await open({ storage: memory(), clock })
    const remote = await connect({ url: 'http://localhost', fetch: network, clock })
    const list = new TodoList(local, remote)
    return { list, close: () => Promise.all([list.close(), remote.close(), local.close()]) }
  }
  const [one, other] = [await device(), await device()]
  await clock.advance('1m')
  network.refuse()
  await one.list.add('Milk', 1)
  await one.list.add('Bread', 3)
  await other.list.add('Tea', 2)
  await clock.settle()
  expect(titlesOf(one.list)).toEqual(['Milk', 'Bread'])
  expect(one.list.state.value.pending).toBe(2)
  expect(titlesOf(other.list)).toEqual(['Tea'])

  network.heal()
  await clock.advance('10m')
  for (const { list } of [one, other]) expect(titlesOf(list)).toEqual(['Milk', 'Tea', 'Bread'])
  await one.list.undo()
  await clock.advance('1m')
  for (const { list } of [one, other]) {
    expect(titlesOf(list)).toEqual(['Milk', 'Tea'])
    expect(list.state.value.pending).toBe(0)
  }
  await Promise.all([one.close(), other.close()])
  await server.close()
})

test('a change that a deleted list may have contained is sent again', async () => {
  const clock = virtualClock()
  const storage = memory()
  const before = await open({ storage, clock })
  await before.basin('todo').stream('lists/shared').append('not an event of the app')
  let handler = createHandler(before, { auth: 'none' })
  const network = faultyHandler((request) => handler(request), { clock })
  const local = await open({ storage: memory(), clock })
  const remote = await connect({ url: 'http://localhost', fetch: network, clock })
  const list = new TodoList(local, remote)
  await clock.advance('1m')
  // The server stores the change, and the device does not learn of it.
  network.refuse({ when: ({ method, url }) => method === 'GET' && !url.endsWith('/tail') })
  network.loseResponse({ when: ({ method }) => method === 'POST' })
  await before.close()
  const server = await open({ storage, clock })
  handler = createHandler(server, { auth: 'none' })
  await list.add('Milk', 1)
  await clock.advance('1m')
  const stream = server.basin('todo').stream('lists/shared')
  expect(await stream.read().toArray()).toHaveLength(2)
  await stream.delete()
  await stream.append('another list')
  network.heal()
  await clock.advance('10m')
  await list.stream.mirror.restart()
  await list.add('Bread', 2)
  await clock.advance('10m')
  expect(titlesOf(list)).toEqual(['Milk', 'Bread'])
  expect(list.state.value.pending).toBe(0)
  await Promise.all([list.close(), remote.close(), local.close()])
  await server.close()
})

test.each([
  null,
  'text',
  {},
  { type: 'added', id: 'a' },
  { type: 'renamed', id: 'a' },
  { type: 'checked', id: 'a', isDone: 'yes' },
  { type: 'archived', id: 'a' },
  { type: 'removed' },
])('ignores %j, which is no event', (value) => {
  expect(reduceTodo(EMPTY, { value: value as never })).toBe(EMPTY)
})

const id = fc.constantFrom('a', 'b', 'c')
const title = fc.constantFrom('Milk', 'Bread')
const event: fc.Arbitrary<TodoEvent> = fc.oneof(
  fc.record({ type: fc.constant('added' as const), id, title, rank: fc.nat(3) }),
  fc.record({ type: fc.constant('renamed' as const), id, title }),
  fc.record({ type: fc.constant('checked' as const), id, isDone: fc.boolean() }),
  fc.record({ type: fc.constant('removed' as const), id }),
)

test('undoing every action, from the last to the first, leads back to the beginning', () => {
  fc.assert(
    fc.property(fc.array(event), fc.array(event, { maxLength: 20 }), (before, events) => {
      const apply = (state: TodoState, value: TodoEvent) => reduceTodo(state, { value })
      const start = before.reduce(apply, EMPTY)
      let state = start
      const actions = events.flatMap((each) => {
        // The app gives each task an id of its own.
        if (each.type === 'added' && state.tasks.some((task) => task.id === each.id)) return []
        const action = actionOf('', state.tasks, [each])
        state = action.steps.reduce((next, { done }) => apply(next, done), state)
        return action.steps.length === 0 ? [] : [action]
      })
      for (const action of actions.reverse()) {
        const reversal = reversalOf(action, state.tasks)!
        state = reversal.steps.reduce((next, { done }) => apply(next, done), state)
      }
      expect(state).toEqual(start)
    }),
  )
})
