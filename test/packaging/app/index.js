import { open } from 'headwater'
import { indexedDb } from 'headwater/indexeddb'
import { run } from './run.js'

globalThis.inPage = run

/** An engine on a database that stays, to be called from outside. */
globalThis.openApp = async () => {
  const hw = await open({ storage: indexedDb('kept') })
  const stream = hw.basin('my-app').stream('chats/42')
  return {
    append: (text) => stream.append(text).then(({ end }) => end.seqNum),
    tail: () => stream.checkTail().then(({ seqNum }) => seqNum),
    tokens: () =>
      hw.listAccessTokens().then(
        ({ items }) => items.length,
        ({ code }) => code,
      ),
    close: () => hw.close(),
  }
}
