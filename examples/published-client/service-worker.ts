import { open } from 'headwater'
import { serveFetchEvents } from 'headwater/http'
import { indexedDb } from 'headwater/indexeddb'
import { type OwnFiles, serveOwnFiles } from '../shared/own-files.ts'

/** Inserted by the build. */
declare const OWN_FILES: OwnFiles

serveFetchEvents(() => open({ storage: indexedDb('published-client') }), { auth: 'none' })
serveOwnFiles(OWN_FILES)
