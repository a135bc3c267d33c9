import { open } from 'headwater'
import { connect } from 'headwater/client'
import { indexedDb } from 'headwater/indexeddb'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { TodoList } from './todo-list.ts'
import './style.css'

const list = new TodoList(
  await open({ storage: indexedDb('shared-todo') }),
  await connect({ url: location.origin }),
)
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App list={list} />
  </StrictMode>,
)
if (import.meta.env.PROD) navigator.serviceWorker?.register('/service-worker.js')
