// The same class as that of `rxjs`, without the other 200 modules: Node, which does not bundle, takes longer
// to load those than to open an engine.
export { Observable } from 'rxjs/internal/Observable'
