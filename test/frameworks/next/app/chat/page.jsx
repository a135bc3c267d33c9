'use client'
import { useStream } from 'headwater/react'
import { useEffect, useState } from 'react'
import { connectStreams } from './client.js'

export default function Chat() {
  const [hw, setHw] = useState()
  useEffect(() => void connectStreams().then(setHw), [])
  const { records } = useStream(hw?.basin('my-app').stream('chat'), { tailOffset: 50 })
  // biome-ignore format: as in the recipe
  return <ol>{records.map(({ seqNum, body }) => <li key={seqNum}>{body}</li>)}</ol>
}
