import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { openOnce } from 'headwater/http'

export const engine = openOnce(async () => {
  const hw = await open({ storage: filesystem('./data') })
  await hw.ensureBasin('chat')
  return hw
})
