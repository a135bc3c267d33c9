import { connect } from 'headwater/client'

const getToken = async () => (await fetch('/stream-token')).text()

export const connectStreams = () => connect({ url: `${location.origin}/streams`, getToken })
