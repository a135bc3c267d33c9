import { type OwnFiles, serveOwnFiles } from '../shared/own-files.ts'

/** Inserted by the build. */
declare const OWN_FILES: OwnFiles

// The page works offline. Requests of the wire protocol go to the server.
serveOwnFiles(OWN_FILES)
