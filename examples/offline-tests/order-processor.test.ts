import { seededRandom } from 'headwater/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Shop } from './shop.ts'

let shop: Shop

beforeEach(async () => {
  shop = await Shop.open()
})
// No test leaves a timer.
afterEach(async () => {
  await shop.close()
  expect(shop.clock.pending).toBe(0)
})

const shipments = (...goods: string[]) => goods.map((one, order) => ({ order, goods: one }))

test('ships orders in order', async () => {
  await shop.order('tea', 'cups')
  const processor = shop.start('worker-1')
  expect(await shop.shipped(2)).toEqual(shipments('tea', 'cups'))
  expect(await processor.stop()).toBe('stopped')
})

test('ships an order after an hour without one', async () => {
  shop.start('worker-1')
  await shop.order('tea')
  await shop.shipped(1)
  await shop.clock.advance('1h')
  await shop.order('cups')
  expect(await shop.shipped(2)).toEqual(shipments('tea', 'cups'))
})

describe('ships each order once', () => {
  const isAppend = (request: Request) => request.method === 'POST'

  test('if the response to a shipment is lost', async () => {
    shop.network.loseResponse({ when: isAppend, nth: 2 })
    shop.start('worker-1')
    await shop.order('tea', 'cups')
    expect(await shop.shipped(2)).toEqual(shipments('tea', 'cups'))
    expect(await shop.shipmentCount()).toBe(2)
    expect(shop.network.log).toMatchObject([{ fault: 'response lost' }])
  })

  test('if the network delivers a shipment twice', async () => {
    shop.network.duplicate({ when: isAppend, nth: 2 })
    shop.start('worker-1')
    await shop.order('tea', 'cups')
    expect(await shop.shipped(2)).toEqual(shipments('tea', 'cups'))
    expect(await shop.shipmentCount()).toBe(2)
  })

  test('if the disk is full for a moment', async () => {
    shop.start('worker-1')
    await shop.order('tea')
    await shop.shipped(1)
    shop.storage.fail('append', { nth: 2, kind: 'quota' })
    await shop.order('cups')
    expect(await shop.shipped(2)).toEqual(shipments('tea', 'cups'))
    expect(shop.storage.log).toMatchObject([{ operation: 'append', kind: 'quota' }])
  })

  test('if the connection to the orders breaks in the middle of one', async () => {
    shop.network.cut(300, {
      when: (request) => request.headers.get('accept') === 'text/event-stream',
      nth: 2,
    })
    for (const goods of ['tea', 'cups', 'spoons']) await shop.order(goods)
    shop.start('worker-1')
    expect(await shop.shipped(3)).toEqual(shipments('tea', 'cups', 'spoons'))
    expect(shop.network.log).toMatchObject([{ fault: 'cut' }])
  })

  test('if another processor takes over', async () => {
    await shop.order('tea')
    const first = shop.start('worker-1')
    await shop.shipped(1)
    const second = shop.start('worker-2')
    await expect.poll(() => shop.shipmentCount(), { interval: 1 }).toBe(1)
    await shop.order('cups')
    expect(await shop.shipped(2)).toEqual(shipments('tea', 'cups'))
    expect(await first.ended).toBe('superseded')
    expect(await second.stop()).toBe('stopped')
  })

  test('if the service crashes during a shipment', async () => {
    await shop.order('tea')
    shop.start('worker-1')
    await shop.shipped(1)
    // The shipment is stored, but the service crashes before it responds.
    shop.storage.delay('append', '1s', { after: true, nth: 2 })
    await shop.order('cups')
    await expect.poll(() => shop.storage.log.length, { interval: 1 }).toBe(1)
    await shop.crashAndRestart()
    // The first processor continues, unless its client has given up; then the second one does.
    shop.start('worker-2')
    await shop.order('spoons')
    expect(await shop.shipped(3)).toEqual(shipments('tea', 'cups', 'spoons'))
    expect(await shop.shipmentCount()).toBe(3)
  })
})

describe('ships each order once despite random failures', () => {
  const GOODS = Array.from({ length: 20 }, (_, i) => `goods ${i}`)

  test.each([1, 2, 3])('(seed %i)', async (seed) => {
    const flaky = await Shop.open()
    await flaky.order(...GOODS)
    const random = seededRandom(seed)
    const sometimes = { when: () => random() < 0.1 }
    flaky.storage.fail('append', sometimes)
    flaky.storage.fail('append', { after: true, ...sometimes })
    flaky.network.drop(sometimes)
    flaky.network.duplicate(sometimes)
    flaky.network.loseResponse(sometimes)
    flaky.network.cut(100, sometimes)
    const done = flaky.shipped(GOODS.length)
    // Restarts processors that end, like a service manager.
    for (let attempt = 1, isDone = false; !isDone; attempt++) {
      const processor = flaky.start(`worker-${attempt}`)
      isDone = await Promise.race([
        done.then(() => true),
        processor.ended.then(
          () => false,
          () => false,
        ),
      ])
    }
    expect(await done).toEqual(shipments(...GOODS))
    flaky.storage.heal()
    expect(await flaky.shipmentCount()).toBe(GOODS.length)
    await flaky.close()
  })
})
