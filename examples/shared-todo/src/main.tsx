import { open } from 'headwater'
import { connect } from 'headwater/client'
import { indexedDb } from 'headwater/indexeddb'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { serviceWorkerInControl } from '../../shared/service-worker-in-control.ts'
import { App } from './app.tsx'
import { problemText } from './problem.ts'
import { TodoList } from './todo-list.ts'

async function start(): Promise<void> {
  const local = await open({ storage: indexedDb('shared-todo') })
  const remote = await connect({ url: location.origin })
  const list = new TodoList(local, remote)
  // What is stored on this device, whether the server can be reached or not.
  await list.state.loaded()
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <App list={list} />
    </StrictMode>,
  )
}

start().catch((error: unknown) => {
  document.getElementById('root')!.textContent = problemText(error)
})
// Without it, the page works too, but cannot be loaded offline.
serviceWorkerInControl().catch(() => {})
