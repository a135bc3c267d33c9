/**
 * A file of its own, so that the build has a chunk of this name: bundles for where nothing can be loaded
 * later leave it out by that.
 */
export { default } from 'zstd-codec/lib/module.js'
