// What an app imports as `./streams.js` if it is killed and started again. Each start prints a new token.
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'

export const hw = await open({ storage: filesystem('data') })
const all = { prefix: '' }
const full = { read: true, write: true }
const token = await hw.issueAccessToken({
  id: crypto.randomUUID(),
  scope: { basins: all, streams: all, opGroups: { account: full, basin: full, stream: full } },
})
console.log(`access token: ${token}`)
