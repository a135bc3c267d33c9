/** A script with everything that it imports, minified: see `scripts/bundled-assets.mjs`. */
declare module '*?bundle' {
  const bundle: {
    readonly script: string
    /** For a content security policy: `sha256-…`. */
    readonly hash: string
  }
  export default bundle
}

/** The text of a style sheet, minified. */
declare module '*?text' {
  const text: string
  export default text
}
