// What the apps with a build import as `./engine.js`.
import { filesystem } from 'headwater/filesystem'
import { openOnce } from 'headwater/http'
import { opened } from './opened.js'

export const engine = openOnce(() => opened(filesystem(`./data-${process.env.PORT}`)))
