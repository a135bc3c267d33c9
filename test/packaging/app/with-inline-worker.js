import InlineWorker from './worker.js?worker&inline'

/** The same in a worker whose code is in this file. */
globalThis.inWorker = () =>
  new Promise((resolve, reject) => {
    const worker = new InlineWorker()
    worker.onmessage = ({ data: { result, error } }) =>
      error === undefined ? resolve(result) : reject(new Error(error))
    worker.onerror = ({ message }) => reject(new Error(message))
  })
