// What the apps import as `./streams.js`.
import { memory } from 'headwater/memory'
import { opened } from './opened.js'

export const hw = await opened(memory())
