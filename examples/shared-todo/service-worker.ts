import { type OwnFiles, serveOwnFiles } from '../shared/own-files.ts'

/** Inserted by the build. */
declare const OWN_FILES: OwnFiles

serveOwnFiles(OWN_FILES)
