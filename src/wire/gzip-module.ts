/** A file of its own, so that bundles load only these two functions of the package, and only on demand. */
export { Gunzip, gzipSync } from 'fflate'
