import { open } from 'headwater'
import { serveFetchEvents } from 'headwater/http'
import { type OwnFiles, serveOwnFiles } from '../shared/own-files.ts'
import { BASIN, storage } from './src/storage.ts'

/** Put in by the build. */
declare const OWN_FILES: OwnFiles

// The wire protocol, for what is not part of the page: `fetch('/v1/streams?prefix=rooms/')`. Nobody but this origin's own pages can ask.
serveFetchEvents(() => open({ storage }), { open: true, basin: BASIN })
serveOwnFiles(OWN_FILES)
