/**
 * In Node, the package has `observable-node.ts` instead: its condition `node` for `#observable` in
 * package.json.
 */
export { Observable } from 'rxjs'
