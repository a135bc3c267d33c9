import { open } from 'headwater'
import { serveFetchEvents } from 'headwater/http'
import { type OwnFiles, serveOwnFiles } from '../shared/own-files.ts'
import { BASIN, storage } from './src/storage.ts'

/** Inserted by the build. */
declare const OWN_FILES: OwnFiles

// Serves the wire protocol to pages of this origin: `fetch('/v1/streams?prefix=rooms/')`.
serveFetchEvents(() => open({ storage }), { auth: 'none', basin: BASIN, retention: 'infinite' })
serveOwnFiles(OWN_FILES)
